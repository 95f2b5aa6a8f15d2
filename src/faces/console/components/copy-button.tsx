import { copyText } from "../state/copy-text.ts";
import { useNote } from "../state/note.ts";
import { QuietButton } from "./quiet-button.tsx";

/** Copies a text and says so. */
export function CopyButton({ text, children }: { readonly text: () => string; readonly children: string }) {
  const [result, say] = useNote(1_500);
  return (
    <QuietButton
      icon={result === "copied" ? "check" : "copy"}
      word={<span aria-live="polite">{result ?? children}</span>}
      onClick={() => void copyText(text()).then((isCopied) => say(isCopied ? "copied" : "not copied"))}
    />
  );
}
