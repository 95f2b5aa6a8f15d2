/** Minutes between two messages of one incident, by the number of messages before; the last number holds for all further ones. */
const MINUTES = [0, 5, 5, 10, 20, 40, 60];

/**
 * Returns how many minutes after its latest message an incident may name new attackers. So a flood of addresses makes
 * fifteen messages in an hour of five incidents, and each says how many there are.
 */
export function joinIntervalMinutes(messages: number): number {
  return MINUTES[Math.min(messages, MINUTES.length - 1)] ?? 60;
}

const FIRST_CHANGES = 15;
const LONGEST_CHANGES = 240;

/**
 * Returns how many minutes after its latest message an alert about changed rules may name further ones. Twice as long after
 * each message, because the rare rules of a zone that was switched show it over a day.
 */
export function changeIntervalMinutes(messages: number): number {
  return Math.min(FIRST_CHANGES * 2 ** Math.max(messages - 1, 0), LONGEST_CHANGES);
}
