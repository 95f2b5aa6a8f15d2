/**
 * The published formulas of the log-peak guard, written down once more without any thought of speed: what the detector
 * is compared with.
 */
export interface NaiveThreshold {
  readonly threshold: number;
  readonly mu: number;
  readonly delta: number;
  readonly s: number;
  readonly usual: number;
}

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

/** S_w at a minute: the count of the last w minutes. `counts[0]` is minute `firstMinute`. */
export function naiveSum(counts: readonly number[], firstMinute: number, minute: number, w: number): number {
  const index = minute - firstMinute;
  return sum(counts.slice(Math.max(0, index - w + 1), index + 1));
}

export function naiveThreshold(
  counts: readonly number[],
  firstMinute: number,
  hour: number,
  w: number,
  z: number,
  unknown: ReadonlySet<number> = new Set(),
): NaiveThreshold {
  const first = counts.findIndex((count) => count > 0);
  const firstHour = first < 0 ? Infinity : Math.floor((firstMinute + first) / 60);
  const hours: number[] = [];
  for (let h = hour - 169; h <= hour - 2; h++) if (h >= firstHour && !unknown.has(h)) hours.push(h);
  const c = hours.length;
  const minutesOf = (h: number) =>
    Array.from({ length: 60 }, (_, i) => h * 60 + i).filter(
      (m) => m >= firstMinute && m < firstMinute + counts.length,
    );
  const n = new Map(hours.map((h) => [h, sum(minutesOf(h).map((m) => counts[m - firstMinute] ?? 0))]));
  const P = new Map(
    hours.map((h) => [h, Math.max(0, ...minutesOf(h).map((m) => naiveSum(counts, firstMinute, m, w)))]),
  );
  const y = new Map(hours.map((h) => [h, Math.log(1 + (P.get(h) ?? 0))]));
  const isNear = (h: number, d: number) => [d, (d + 1) % 24, (d + 23) % 24].includes(h % 24);

  const fit = (values: ReadonlyMap<number, number>) => {
    const all = sum([...values.values()]) / Math.max(c, 1);
    const mu = (d: number) => {
      const near = hours.filter((h) => isNear(h, d)).map((h) => values.get(h) ?? 0);
      const m = (sum(near) + 3 * all) / (near.length + 3);
      const exact = hours.filter((h) => h % 24 === d).map((h) => values.get(h) ?? 0);
      return Math.max(m, (sum(exact) + m) / (exact.length + 1));
    };
    const squares = hours.map((h) => ((values.get(h) ?? 0) - mu(h % 24)) ** 2);
    return { mu, s: Math.sqrt((sum(squares) + 12 * 0.6 ** 2) / (c + 12)) };
  };
  const rough = fit(y);
  const clipped = new Map(
    [...y].map(([h, value]) => {
      const centre = rough.mu(h % 24);
      return [h, Math.min(Math.max(value, centre - 2 * rough.s), centre + 2 * rough.s)];
    }),
  );
  const { mu, s } = fit(clipped);
  const r = [hour - 2, hour - 3]
    .filter((k) => hours.includes(k))
    .map((k) => Math.min(Math.max((y.get(k) ?? 0) - mu(k % 24), -3 * s), 3 * s));
  // The published form has 2 here.
  const delta = sum(r) / (r.length + 2);
  let threshold = Math.max(10, Math.exp(mu(hour % 24) + delta + z * s) - 1);
  const busy = [...n.values()].filter((count) => count > 0);
  const a = busy.length;
  if (a < 0.8 * c) {
    threshold = Math.max(threshold, Math.min(2 * (Math.max(...P.values()) + 1) - 1, 200));
    const g = Math.exp(sum(busy.map((count) => Math.log(count))) / (a + 1));
    threshold = Math.max(threshold, 10 * g ** 0.7);
  }
  const comparable = hours.filter((h) => isNear(h, hour % 24));
  const among = comparable.length > 0 ? comparable : hours;
  const usual = ((w / 60) * sum(among.map((h) => n.get(h) ?? 0))) / Math.max(among.length, 1);
  return { threshold, mu: mu(hour % 24), delta, s, usual };
}
