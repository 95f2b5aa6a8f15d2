/** A Friday afternoon; the time of every test's clock until the test changes it. */
export const NOW = Date.UTC(2026, 10, 20, 15, 30);
