import { WINDOWS } from "#model/kinds.ts";
export const WINDOW_COUNT = WINDOWS.length;
export const LONGEST_WINDOW = 60;
