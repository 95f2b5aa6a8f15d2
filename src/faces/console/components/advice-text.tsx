import { Box } from "@mantine/core";
import { stripMarkdown } from "#lib/strip-markdown.ts";
import { Payload } from "./payload.tsx";

/** A text of the platform's AI as plain text, without the marks of Markdown. */
export function AdviceText({ text }: { readonly text: string }) {
  return (
    <Box maw="90ch">
      {stripMarkdown(text)
        .split("\n")
        .map((line, index) => (
          <Box key={`${index}`} mih={10}>
            {line === "" ? null : <Payload prose text={line} />}
          </Box>
        ))}
    </Box>
  );
}
