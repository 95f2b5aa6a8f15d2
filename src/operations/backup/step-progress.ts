export type StepProgress = ReturnType<typeof createStepProgress>;

/**
 * Reports the progress of steps whose sizes are estimates: a step never counts for more than its size. `onProgress` gets a
 * share from 0 to 1, and is called again when the share has grown by a thousandth.
 */
export function createStepProgress(total: number, onProgress: (share: number, label: string) => void) {
  let ended = 0;
  let step = { label: "", size: 0, done: 0 };
  let shown = -1;
  const report = () => {
    const share = (ended + Math.min(step.done, step.size)) / Math.max(total, 1);
    const thousandths = Math.floor(share * 1_000);
    if (thousandths !== shown) onProgress(share, step.label);
    shown = thousandths;
  };
  return {
    begin(label: string, size: number): void {
      ended += step.size;
      step = { label, size, done: 0 };
      shown = -1;
      report();
    },
    advance(amount: number): void {
      step.done += amount;
      report();
    },
  };
}
