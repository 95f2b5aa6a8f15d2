import { WINDOWS } from "#model/kinds.ts";
import { WINDOW_COUNT } from "./windows.ts";

/**
 * Returns the events of the last 3, 15 and 60 minutes up to and including the one at `index`. Minutes before `from`
 * are left out, because an earlier spike of the series has already reported them.
 */
export function windowSums(
  counts: ArrayLike<number>,
  index: number,
  from = 0,
  out: Int32Array = new Int32Array(WINDOW_COUNT),
): Int32Array {
  let sum = 0;
  let next = index;
  for (const [i, width] of WINDOWS.entries()) {
    for (const oldest = Math.max(index - width + 1, from, 0); next >= oldest; next -= 1) {
      sum += counts[next] ?? 0;
    }
    out[i] = sum;
  }
  return out;
}
