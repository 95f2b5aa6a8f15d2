/** Window lengths in minutes. A series is judged by the counts of its last 3, 15 and 60 closed minutes. */
export const WINDOWS = [3, 15, 60] as const;
export type WindowMinutes = (typeof WINDOWS)[number];
export const WINDOW_COUNT = WINDOWS.length;
export const LONGEST_WINDOW = 60;
