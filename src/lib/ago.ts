const UNITS = [
  { unit: "s", ms: 1_000, below: 120 },
  { unit: "min", ms: 60_000, below: 120 },
  { unit: "h", ms: 3_600_000, below: 72 },
] as const;

/** Returns a duration such as `4 s`, `7 min`, `3 h` or `12 d`. A negative duration becomes `0 s`. */
export function showAge(ms: number): string {
  for (const { unit, ms: length, below } of UNITS) {
    const count = Math.max(0, Math.round(ms / length));
    if (count < below) return `${count} ${unit}`;
  }
  return `${Math.round(ms / 86_400_000)} d`;
}

/** Returns a text such as `4 s ago`. */
export function ago(ms: number): string {
  return `${showAge(ms)} ago`;
}
