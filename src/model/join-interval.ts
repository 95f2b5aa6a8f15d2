/** Minutes between two messages of one incident, by the number of messages before; the last number holds for all further ones. */
const MINUTES = [0, 5, 5, 10, 20, 40, 60];

/**
 * Returns how many minutes after its latest message an incident may name new attackers. So a flood of addresses makes
 * fifteen messages in an hour of five incidents, and each says how many there are.
 */
export function joinIntervalMinutes(messages: number): number {
  return MINUTES[Math.min(messages, MINUTES.length - 1)] ?? 60;
}
