import { Button, Popover, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { SubtleButton } from "../components/buttons.tsx";
import { useFields } from "../state/fields.ts";
import { SPANS, type SpanName, useSpan } from "../state/span.ts";
import { Icon } from "../style/icons.tsx";
import { formatMoment, formatUtc } from "../style/words.ts";

/** The span of every number on the page: one that ends now, or one with two fixed ends. */
export function SpanSelect() {
  const { name, fromMs, toMs, choose } = useSpan();
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-start" shadow="md" trapFocus>
      <Popover.Target>
        <SubtleButton
          size="xs"
          fw={400}
          title={`${formatUtc(fromMs)} to ${formatUtc(toMs)}`}
          rightSection={<Icon name="down" size={12} />}
          word={name === null ? `${formatMoment(fromMs)} – ${formatMoment(toMs)}` : `last ${name}`}
          onClick={() => setOpen(!isOpen)}
        />
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="sm" w={320} maw="calc(100vw - 48px)">
          <SegmentedControl
            fullWidth
            aria-label="Span that ends now"
            data={Object.keys(SPANS)}
            value={name ?? ""}
            onChange={(value) => {
              choose(value as SpanName);
              close();
            }}
          />
          <FixedSpan key={`${isOpen}`} onDone={close} />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

const TIME = { type: "datetime-local", step: 1 } as const;

function FixedSpan({ onDone }: { readonly onDone: () => void }) {
  const span = useSpan();
  const { values, text } = useFields(() => ({ from: toInput(span.fromMs), to: toInput(span.toMs) }));
  const [fromMs, toMs] = [Date.parse(values.from), Date.parse(values.to)];
  const problem = fromMs < toMs ? null : "The end must be after the begin.";
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (problem !== null) return;
        span.narrow(fromMs, toMs);
        onDone();
      }}
    >
      <Stack gap="xs">
        <TextInput {...TIME} label="From, in your time zone" {...text("from")} />
        <TextInput {...TIME} label="To" {...text("to")} error={problem} />
        <div className="lw-bar">
          <Button type="submit" disabled={problem !== null}>
            Show this span
          </Button>
          <SubtleButton
            word="Twice as wide"
            onClick={() => {
              span.widen();
              onDone();
            }}
          />
        </div>
      </Stack>
    </form>
  );
}

/** The value of a `datetime-local` input, which has no zone. */
function toInput(atMs: number): string {
  return formatMoment(atMs, { seconds: true }).replace(" ", "T");
}
