import { Button, Popover, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { Icon } from "../look/icons.tsx";
import { formatMoment, formatUtc } from "../look/words.ts";
import { SPANS, type SpanName, useSpan } from "../state/span.ts";
import classes from "./span-select.module.css";

/** The span of every number on the page: one that ends now, or one with two fixed ends. */
export function SpanSelect() {
  const span = useSpan();
  const [isOpen, setOpen] = useState(false);
  const label = span.name ?? `${formatMoment(span.fromMs)} – ${formatMoment(span.toMs)}`;
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-start" shadow="md" trapFocus>
      <Popover.Target>
        <button
          type="button"
          className={classes["target"]}
          aria-expanded={isOpen}
          title={`${formatUtc(span.fromMs)} to ${formatUtc(span.toMs)}`}
          onClick={() => setOpen(!isOpen)}
        >
          <span className={classes["label"]}>{span.name === null ? label : `last ${label}`}</span>
          <Icon name="down" size={12} />
        </button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="sm" w={320} maw="calc(100vw - 48px)">
          <SegmentedControl
            size="xs"
            fullWidth
            aria-label="Span that ends now"
            data={Object.keys(SPANS)}
            value={span.name ?? ""}
            onChange={(value) => {
              span.choose(value as SpanName);
              setOpen(false);
            }}
          />
          <FixedSpan key={`${isOpen}`} onDone={() => setOpen(false)} />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

function FixedSpan({ onDone }: { readonly onDone: () => void }) {
  const span = useSpan();
  const [from, setFrom] = useState(() => toInput(span.fromMs));
  const [to, setTo] = useState(() => toInput(span.toMs));
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
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
        <TextInput
          size="xs"
          type="datetime-local"
          step={1}
          label="From, in your time zone"
          value={from}
          onChange={(event) => setFrom(event.currentTarget.value)}
        />
        <TextInput
          size="xs"
          type="datetime-local"
          step={1}
          label="To"
          value={to}
          error={problem}
          onChange={(event) => setTo(event.currentTarget.value)}
        />
        <div className={classes["buttons"]}>
          <Button type="submit" disabled={problem !== null}>
            Show this span
          </Button>
          <Button
            variant="default"
            onClick={() => {
              span.widen();
              onDone();
            }}
          >
            Twice as wide
          </Button>
        </div>
      </Stack>
    </form>
  );
}

/** The value of a `datetime-local` input, which has no zone. */
function toInput(atMs: number): string {
  return formatMoment(atMs, { seconds: true }).replace(" ", "T");
}
