import { afterAll, onTestFinished, TestRunner } from "vitest";

/**
 * Closes what a helper opened: when the running test ends, or after the last test of the file if the file opens it for all of them
 * with a top-level `await`. A `beforeAll` cannot open it, because vitest ignores an `afterAll` that is called there.
 */
export function atEnd(close: () => unknown): void {
  const end = async () => void (await close());
  if (TestRunner.getCurrentTest() === undefined) afterAll(end);
  else onTestFinished(end);
}
