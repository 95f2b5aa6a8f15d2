import { useEffect, useState } from "react";

interface RowKeys {
  readonly count: number;
  readonly onOpen: (index: number) => void;
  readonly onMove?: (index: number) => void;
  /** A dialog is open, which has keys of its own. */
  readonly isPaused?: boolean;
}

/** The keys of a table: j and k, arrows, Enter. Returns the chosen row, -1 for none, and the function that chooses. */
export function useRowKeys({
  count,
  onOpen,
  onMove,
  isPaused = false,
}: RowKeys): [number, (index: number) => void] {
  const [chosen, choose] = useState(-1);
  useEffect(() => {
    if (isPaused) return undefined;
    const press = (event: KeyboardEvent) => {
      const { target, key } = event;
      const isElsewhere =
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        (target instanceof HTMLElement &&
          target.closest("input, textarea, select, [role=dialog], [role=menu]") !== null);
      if (isElsewhere || count === 0) return;
      const step = key === "j" || key === "ArrowDown" ? 1 : key === "k" || key === "ArrowUp" ? -1 : 0;
      if (step !== 0) {
        event.preventDefault();
        const next = Math.min(Math.max(chosen + step, 0), count - 1);
        choose(next);
        onMove?.(next);
      } else if (
        key === "Enter" &&
        chosen >= 0 &&
        !(target instanceof HTMLElement && target.closest("a, button"))
      )
        onOpen(chosen);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [chosen, count, onOpen, onMove, isPaused]);
  return [chosen, choose];
}
