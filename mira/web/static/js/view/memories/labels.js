// Where names fit in a picture: beside their node, on no other node, on no other name.

const HEIGHT = 14;
const GAP = 4;

/** `labels`: {id, x, y, r, w} — a node's middle and radius, and how wide its name is — the most
 *  wanted first; `nodes`: {id, x, y, r}. Returns a Map from id to where the name begins, {x, y}
 *  at its base line; those that fit nowhere are missing. */
export function placeLabels(labels, nodes, { width, height }) {
  const taken = nodes.map(({ x, y, r }) => box(x - r - 1, y - r - 1, 2 * r + 2, 2 * r + 2));
  const placed = new Map();
  for (const label of labels) {
    const spot = spots(label).find(
      (one) =>
        one.x >= GAP &&
        one.y >= GAP &&
        one.x + one.w <= width - GAP &&
        one.y + one.h <= height - GAP &&
        !taken.some((other) => meet(one, other)),
    );
    if (!spot) continue;
    taken.push(spot);
    placed.set(label.id, { x: spot.x, y: spot.y + HEIGHT - GAP });
  }
  return placed;
}

function spots({ x, y, r, w }) {
  const away = r + GAP;
  return [
    box(x - w / 2, y + away - 1, w, HEIGHT), // below
    box(x + away, y - HEIGHT / 2, w, HEIGHT), // right
    box(x - away - w, y - HEIGHT / 2, w, HEIGHT), // left
    box(x - w / 2, y - away - HEIGHT + 1, w, HEIGHT), // above
    box(x - 8, y + away - 1, w, HEIGHT), // below, to the right
    box(x + 8 - w, y + away - 1, w, HEIGHT), // below, to the left
    box(x - 8, y - away - HEIGHT + 1, w, HEIGHT), // above, to the right
    box(x + 8 - w, y - away - HEIGHT + 1, w, HEIGHT), // above, to the left
  ];
}

const box = (x, y, w, h) => ({ x, y, w, h });

const meet = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
