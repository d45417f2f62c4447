// Days and times as people say them, in the browser's own zone and language.

const day = (date) => new Date(date.getFullYear(), date.getMonth(), date.getDate());

/** A key that is equal for moments of the same local day. */
export function dayKey(iso) {
  const date = new Date(iso);
  return `${date.getFullYear()}-${date.getMonth() + 1}-${date.getDate()}`;
}

/** "Today", "Yesterday", "Monday, 3 March", with the year when it is not this one. */
export function dayName(iso, now = new Date()) {
  const date = new Date(iso);
  const days = Math.round((day(now) - day(date)) / 86_400_000);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  const sameYear = date.getFullYear() === now.getFullYear();
  return date.toLocaleDateString(undefined, {
    weekday: "long",
    day: "numeric",
    month: "long",
    ...(sameYear ? {} : { year: "numeric" }),
  });
}

export const timeOfDay = (iso) =>
  new Date(iso).toLocaleTimeString(undefined, { hour: "numeric", minute: "2-digit" });

/** "3 Mar 2026", and without the year when it is this one. */
export function dateOf(iso, now = new Date()) {
  const date = new Date(iso);
  const sameYear = date.getFullYear() === now.getFullYear();
  return date.toLocaleDateString(undefined, {
    day: "numeric",
    month: "short",
    ...(sameYear ? {} : { year: "numeric" }),
  });
}

/** "3 Mar, 10:40" */
export const momentOf = (iso) => `${dateOf(iso)}, ${timeOfDay(iso)}`;

/** "3 Mar, 10:40 – 11:20", with both days when they differ. */
export function spanOf(from, to) {
  if (dayKey(from) !== dayKey(to)) return `${momentOf(from)} – ${momentOf(to)}`;
  const [begin, end] = [timeOfDay(from), timeOfDay(to)];
  return begin === end ? momentOf(from) : `${momentOf(from)} – ${end}`;
}
