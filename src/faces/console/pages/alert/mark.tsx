import { Button, SegmentedControl, TextInput } from "@mantine/core";
import { useState } from "react";
import { MARKS, type Mark as MarkWord } from "#model/kinds.ts";
import { type AlertDetail, useAlertContext, useMarkAlert } from "../../api/alert.ts";
import { PopoverForm } from "../../components/popover-form.tsx";
import { ProblemBox } from "../../components/states.tsx";

const ABOUT: Readonly<Record<MarkWord, string>> = {
  attack: "Its hours leave the history of the rule, so that the next attack is not taken for usual.",
  noise: "Its hours stay in the history of the rule, and the threshold grows with them.",
};

/** Says what the alert was about. A later mark replaces an earlier one. */
export function Mark({ alert: { id } }: { readonly alert: AlertDetail }) {
  const known = useAlertContext(String(id)).data?.mark ?? null;
  const [isOpen, setOpen] = useState(false);
  const [mark, setMark] = useState<MarkWord>("attack");
  const [note, setNote] = useState("");
  const send = useMarkAlert(id);
  return (
    <PopoverForm
      word={known === null ? "Mark" : `Marked as ${known}`}
      button={{ size: "xs" }}
      isOpen={isOpen}
      onToggle={setOpen}
      onSubmit={() => send.mutate({ mark, note: note.trim() }, { onSuccess: () => setOpen(false) })}
    >
      <SegmentedControl
        size="xs"
        fullWidth
        aria-label="What it was"
        data={[...MARKS]}
        value={mark}
        onChange={(value) => setMark(value)}
      />
      <div className="lw-note">{ABOUT[mark]}</div>
      <TextInput
        size="xs"
        label="Reason for the audit trail (may stay empty)"
        maxLength={500}
        value={note}
        onChange={(event) => setNote(event.currentTarget.value)}
      />
      {send.error === null ? null : <ProblemBox thrown={send.error} />}
      <Button type="submit" size="xs" loading={send.isPending}>
        Mark as {mark}
      </Button>
    </PopoverForm>
  );
}
