/** Longest observed time after which the platform still shows an event late. */
export const SETTLE_MS = 15 * 60_000;
