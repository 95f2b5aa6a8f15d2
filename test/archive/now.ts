/** A Friday afternoon; every test's clock stands here until it moves it. */
export const NOW = Date.UTC(2026, 10, 20, 15, 30);
