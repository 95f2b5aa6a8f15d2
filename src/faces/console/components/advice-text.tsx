import { Box } from "@mantine/core";
import { stripMarkdown } from "#lib/strip-markdown.ts";
import { Payload } from "./payload.tsx";

/** A text of the platform's AI as plain text, without the marks of Markdown. */
export function AdviceText({ text }: { readonly text: string }) {
  return (
    <Box maw="90ch">
      {joinWrapped(stripMarkdown(text).split(/\r?\n/)).map((line, index) => (
        <Box key={`${index}`} mih={10}>
          {line === "" ? null : <Payload prose text={line} />}
        </Box>
      ))}
    </Box>
  );
}

/** A line that is at least this long was probably broken because of its length. */
const WRAPPED_CHARS = 60;
const ITEM = /^\s*(?:[-*+•]|\d+[.)])\s/;

/** Joins the lines of a paragraph that was wrapped. Items of lists and short lines keep lines of their own. */
function joinWrapped(lines: readonly string[]): string[] {
  const joined: string[] = [];
  let wasLong = false;
  for (const line of lines) {
    const last = joined.at(-1);
    if (wasLong && last !== undefined && line.trim() !== "" && !ITEM.test(line))
      joined[joined.length - 1] = `${last} ${line.trim()}`;
    else joined.push(line);
    wasLong = line.length >= WRAPPED_CHARS;
  }
  return joined;
}
