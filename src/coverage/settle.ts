/** Until when an event may still appear after its time, as far as seen: the platform shows them late. */
export const SETTLE_MS = 15 * 60_000;
