import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { Icon } from "../look/icons.tsx";
import { copyText } from "../state/copy-text.ts";

/** Copies a text and says so. */
export function CopyButton({ text, children }: { readonly text: () => string; readonly children: string }) {
  const [result, setResult] = useState<"copied" | "not copied" | null>(null);
  useEffect(() => {
    if (result === null) return undefined;
    const timer = setTimeout(() => setResult(null), 1_500);
    return () => clearTimeout(timer);
  }, [result]);
  return (
    <Button
      variant="default"
      leftSection={<Icon name={result === "copied" ? "check" : "copy"} size={13} />}
      onClick={() => void copyText(text()).then((isCopied) => setResult(isCopied ? "copied" : "not copied"))}
    >
      <span aria-live="polite">{result ?? children}</span>
    </Button>
  );
}
