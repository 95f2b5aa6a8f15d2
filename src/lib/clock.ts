/** The wall clock as a parameter, in epoch milliseconds. Tests pass a fixed or driven one. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();
