// Places for the nodes of a small graph: linked ones near each other, all of them apart. The same
// graph is always laid out alike; time grows with the square of the nodes, so keep it to a hundred.

const STEPS = 260;
const TURN = Math.PI * (3 - Math.sqrt(5)); // of a sunflower: no two begin at the same place

/** `edges` are pairs of ids. Returns a Map from id to {x, y} inside a box of `width` × `height`,
 *  `margin` away from its edges. */
export function layout(ids, edges, { width, height, margin = 24 }) {
  const points = ids.map((id, n) => {
    const far = Math.sqrt(n + 0.5);
    return { id, x: far * Math.cos(n * TURN), y: far * Math.sin(n * TURN), dx: 0, dy: 0 };
  });
  const byId = new Map(points.map((point) => [point.id, point]));
  const springs = edges
    .map(([from, to]) => [byId.get(from), byId.get(to)])
    .filter(([a, b]) => a && b && a !== b);
  const linked = new Set(springs.flat());
  const flat = width / height;
  for (let step = 0; step < STEPS; step += 1) {
    push(points);
    springs.forEach(pull);
    const most = 0.4 * (1 - step / STEPS) + 0.01;
    for (const point of points) {
      const home = linked.has(point) ? 0.08 : 0.3; // nothing else keeps a single one from drifting
      point.dx -= point.x * home;
      point.dy -= point.y * home * flat;
      const length = Math.hypot(point.dx, point.dy) || 1;
      point.x += (point.dx / length) * Math.min(length, most);
      point.y += (point.dy / length) * Math.min(length, most);
      point.dx = 0;
      point.dy = 0;
    }
  }
  return fit(points, width, height, margin);
}

function push(points) {
  for (let i = 0; i < points.length; i += 1) {
    for (let j = i + 1; j < points.length; j += 1) {
      const a = points[i];
      const b = points[j];
      const x = a.x - b.x;
      const y = a.y - b.y;
      const force = 1 / Math.max(x * x + y * y, 0.01);
      a.dx += x * force;
      a.dy += y * force;
      b.dx -= x * force;
      b.dy -= y * force;
    }
  }
}

function pull([a, b]) {
  const x = b.x - a.x;
  const y = b.y - a.y;
  const force = Math.hypot(x, y) * 0.5;
  a.dx += x * force;
  a.dy += y * force;
  b.dx -= x * force;
  b.dy -= y * force;
}

function fit(points, width, height, margin) {
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  // A few nodes are not blown up to fill the box; many fill it in both directions.
  const most = Math.min(width, height) / 2.4;
  const across = Math.min(most, (width - 2 * margin) / Math.max(right - left, 0.001));
  const down = Math.min(most, (height - 2 * margin) / Math.max(bottom - top, 0.001));
  return new Map(
    points.map(({ id, x, y }) => [
      id,
      {
        x: width / 2 + (x - (left + right) / 2) * across,
        y: height / 2 + (y - (top + bottom) / 2) * down,
      },
    ]),
  );
}
