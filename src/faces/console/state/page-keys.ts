import { useEffect } from "react";

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
