import { vi } from "vitest";

const PATIENCE_MS = 60_000;
const waitFor = vi.waitFor;

/**
 * A wait ends as soon as what it waits for is there, and its timeout promises nothing: it is never shorter than a busy
 * machine may need. The default of one second is.
 */
vi.waitFor = (callback, options = {}) => {
  const given = typeof options === "number" ? { timeout: options } : options;
  return waitFor(callback, { ...given, timeout: Math.max(given.timeout ?? 0, PATIENCE_MS) });
};
