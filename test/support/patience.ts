import { expect, vi } from "vitest";

const PATIENCE_MS = 60_000;
const { waitFor } = vi;
const { poll } = expect;

/**
 * A wait ends as soon as its condition holds, so a long timeout costs nothing. The timeout is never shorter than a
 * busy machine may need, unlike the default of one second.
 */
vi.waitFor = (callback, options = {}) => {
  const given = typeof options === "number" ? { timeout: options } : options;
  return waitFor(callback, { ...given, timeout: Math.max(given.timeout ?? 0, PATIENCE_MS) });
};
expect.poll = (read, options = {}) =>
  poll(read, { ...options, timeout: Math.max(options.timeout ?? 0, PATIENCE_MS) });
