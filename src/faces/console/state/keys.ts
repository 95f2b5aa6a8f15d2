/** Keys of the keyboard. */
import { useEffect, useState } from "react";

/** The keys of a page. They do nothing while the reader writes or a dialog is open. */
export function usePageKeys(keys: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { key, target } = event;
      const isElsewhere =
        target instanceof HTMLElement && target.closest("input, textarea, select, [role=dialog]") !== null;
      const isCommand = event.ctrlKey || event.metaKey || event.altKey || event.repeat;
      if (isElsewhere || isCommand || !Object.hasOwn(keys, key)) return;
      event.preventDefault();
      keys[key]?.();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [keys]);
}

interface RowKeys {
  readonly count: number;
  readonly onOpen: (index: number) => void;
  /** Shows the row. By default the element with its number in `data-row` is scrolled to. */
  readonly onMove?: (index: number) => void;
  /** A dialog is open, which has keys of its own. */
  readonly isPaused?: boolean;
}

/** The keys of a table: j and k, arrows, Enter. Returns the chosen row, -1 for none, and the function that chooses. */
export function useRowKeys(keys: RowKeys): [number, (index: number) => void] {
  const { count, onOpen, onMove = scrollToRow, isPaused = false } = keys;
  const [chosen, choose] = useState(-1);
  useEffect(() => {
    if (isPaused) return undefined;
    const press = (event: KeyboardEvent) => {
      const { target, key } = event;
      const isIn = (places: string) => target instanceof HTMLElement && target.closest(places) !== null;
      const isElsewhere = isIn("input, textarea, select, [role=dialog], [role=menu]");
      if (event.ctrlKey || event.metaKey || event.altKey || isElsewhere || count === 0) return;
      const step = key === "j" || key === "ArrowDown" ? 1 : key === "k" || key === "ArrowUp" ? -1 : 0;
      if (step !== 0) {
        event.preventDefault();
        const next = Math.min(Math.max(chosen + step, 0), count - 1);
        choose(next);
        onMove(next);
      } else if (key === "Enter" && chosen >= 0 && !isIn("a, button")) onOpen(chosen);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [chosen, count, onOpen, onMove, isPaused]);
  return [chosen, choose];
}

function scrollToRow(index: number): void {
  document.querySelector(`[data-row="${index}"]`)?.scrollIntoView({ block: "nearest" });
}
