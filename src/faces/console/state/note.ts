import { useEffect, useState } from "react";

/** A short text that disappears by itself after so many milliseconds, and the function that says it. */
export function useNote(shownMs: number): readonly [note: string | null, say: (text: string) => void] {
  const [note, setNote] = useState<{ readonly text: string } | null>(null);
  useEffect(() => {
    if (note === null) return undefined;
    const timer = setTimeout(() => setNote(null), shownMs);
    return () => clearTimeout(timer);
  }, [note, shownMs]);
  return [note?.text ?? null, (text) => setNote({ text })];
}
