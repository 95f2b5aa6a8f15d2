export const DAY = "2026-11-18";
export const DAY_START = Date.parse(DAY);
/** Early enough on the fifth day after that the day can no longer change. */
export const NOW = DAY_START + 4 * 86_400_000 + 3_600_000 * 2;
