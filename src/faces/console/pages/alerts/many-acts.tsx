import { Checkbox, Group, SegmentedControl, TextInput } from "@mantine/core";
import { useState } from "react";
import { useFields } from "#faces/console/components/forms.tsx";
import { SILENCE_SCOPES, type SilenceScope, type StateAct } from "#model/kinds.ts";
import { type Input, type Output, useChange } from "../../api/ask.ts";
import type { Alert } from "../../api/queries.ts";
import { PopoverForm } from "../../components/forms.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { DURATIONS, DurationChoice, type DurationName } from "../alert/silence-dialog.tsx";

type ManyBody = Input<"alerts.act">;

/** The most alerts of one request. */
const MOST = 200;

interface Props {
  readonly selected: readonly Alert[];
  /** The unresolved alerts that are shown. */
  readonly shown: readonly Alert[];
  readonly onSelect: (some: readonly Alert[]) => void;
}

/** Selects the alerts that are shown, and acknowledges, resolves or silences those that are selected. */
export function ManyActs({ selected, shown, onSelect }: Props) {
  const send = useChange("alerts.act");
  const selectable = shown.slice(0, MOST);
  const isAll = selected.length > 0 && selected.length >= selectable.length;
  const act = (body: Omit<ManyBody, "ids">) =>
    send.mutateAsync({ ...body, ids: selected.map(({ id }) => id) }).then(() => onSelect([]));
  return (
    <Group gap={12} mih={44} px={12} className="lw-line">
      <Checkbox
        label={selected.length === 0 ? `Select all ${selectable.length}` : `${selected.length} selected`}
        checked={isAll}
        indeterminate={selected.length > 0 && !isAll}
        onChange={() => onSelect(isAll ? [] : selectable)}
      />
      {selected.length === 0 ? null : (
        <>
          <NoteForm word="Acknowledge" act="ack" onSend={act} isPending={send.isPending} />
          <SilenceForm onSend={act} isPending={send.isPending} />
          <NoteForm word="Resolve" act="resolve" onSend={act} isPending={send.isPending} />
        </>
      )}
      <ProblemBox thrown={send.error} />
      {send.data === undefined || selected.length > 0 ? null : <Outcome acted={send.data} />}
    </Group>
  );
}

interface FormProps {
  readonly isPending: boolean;
  readonly onSend: (body: Omit<ManyBody, "ids">) => Promise<unknown>;
}

interface NoteProps extends FormProps {
  readonly word: string;
  readonly act: StateAct;
}

function NoteForm({ word, act, isPending, onSend }: NoteProps) {
  const [isOpen, setOpen] = useState(false);
  const { values, text } = useFields({ note: "" });
  const note = values.note.trim();
  return (
    <PopoverForm
      word={word}
      isOpen={isOpen}
      onToggle={setOpen}
      onSubmit={() => void onSend({ act, ...(note === "" ? {} : { note }) }).catch(() => undefined)}
      submit={{ word: `${word} the selected alerts`, loading: isPending }}
    >
      <TextInput label="Note for the others (may stay empty)" maxLength={500} {...text("note")} />
    </PopoverForm>
  );
}

const SCOPE_WORDS: Readonly<Record<SilenceScope, string>> = {
  source: "address or network",
  rule: "rule",
  zone: "zone",
};
const ABOUT: Readonly<Record<SilenceScope, string>> = {
  source:
    "One silence for the address or network of each alert, or for its rule if no address has most of its events.",
  rule: "One silence for the rule of each alert, in its zone.",
  zone: "One silence for the whole zone of each alert.",
};

function SilenceForm({ isPending, onSend }: FormProps) {
  const [isOpen, setOpen] = useState(false);
  const { values, text, choice } = useFields({
    scope: "source" as SilenceScope,
    duration: "2 h" as DurationName,
    reason: "",
  });
  const { scope, duration, reason } = values;
  const body = {
    act: "silence",
    note: reason.trim(),
    durationMinutes: DURATIONS[duration],
    // Without a scope the service falls back to the rule.
    ...(scope === "source" ? {} : { scope }),
  } as const;
  return (
    <PopoverForm
      word="Silence"
      width={340}
      isOpen={isOpen}
      onToggle={setOpen}
      onSubmit={() => void onSend(body).catch(() => undefined)}
      submit={{ word: `Silence for ${duration}`, loading: isPending, disabled: reason.trim() === "" }}
    >
      <SegmentedControl
        aria-label="What is silenced"
        data={SILENCE_SCOPES.map((value) => ({ value, label: SCOPE_WORDS[value] }))}
        {...choice("scope")}
      />
      <div className="lw-note">{ABOUT[scope]}</div>
      <DurationChoice {...choice("duration")} />
      <TextInput label="Reason" required maxLength={500} {...text("reason")} />
    </PopoverForm>
  );
}

/** The result for each alert; each one that was refused says why. */
function Outcome({ acted: { items } }: { readonly acted: Output<"alerts.act"> }) {
  const done = items.filter(({ result }) => result === "done" || result === "noted").length;
  const refused = items.filter(({ detail }) => detail !== null);
  return (
    <div role="status" className="lw-note">
      {done} of {items.length} done.
      {refused.map(({ id, detail }) => (
        <div key={id}>{detail}</div>
      ))}
    </div>
  );
}
