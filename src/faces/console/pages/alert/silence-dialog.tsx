import { Button, Modal, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { type ReactNode, useState } from "react";
import { type AlertDetail, type NewSilence, useAddSilence, useSilencePreview } from "../../api/queries.ts";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox, QueryView } from "../../components/states.tsx";
import { quoteForShell } from "../../state/browser.ts";
import { useZoneTitle } from "../../state/zones.ts";
import { MATCHERS } from "../../style/words.ts";

export const DURATIONS = {
  "30 min": 30,
  "1 h": 60,
  "2 h": 120,
  "8 h": 480,
  "1 d": 1_440,
  "7 d": 10_080,
} as const;
export type DurationName = keyof typeof DURATIONS;

export function DurationChoice({
  value,
  onChange,
}: {
  readonly value: DurationName;
  readonly onChange: (value: DurationName) => void;
}) {
  return (
    <SegmentedControl
      size="xs"
      aria-label="For how long"
      data={Object.keys(DURATIONS)}
      value={value}
      onChange={(chosen) => onChange(chosen as DurationName)}
    />
  );
}

const KIND_WORDS: Readonly<Record<string, string>> = {
  sources: "sources",
  "action-change": "changed actions",
  "silent-rule": "silent rules",
};

/** `address 203.0.113.7`, `rule 942100`, `everything in the zone`. The values are text of requests. */
function nameChoice({ scope, matchers }: AlertDetail["silenceChoices"][number]) {
  if (scope === "zone") return "everything in the zone";
  const [kind] = matchers.kind ?? [];
  if (kind !== undefined && matchers.rule === undefined)
    return `every alert about ${KIND_WORDS[kind] ?? kind} in the zone`;
  const [name, values] = Object.entries(matchers).find(([one]) => one !== "zone") ?? [];
  return (
    <span className="lw-wrap">
      {kind === undefined ? "" : `${KIND_WORDS[kind] ?? kind} of `}
      {MATCHERS[name ?? ""] ?? name} <Payload prose text={(values ?? []).join(", ")} />
    </span>
  );
}

interface SilenceFormProps {
  readonly title: string;
  readonly matchers: NewSilence["matchers"];
  /** The command that adds it, up to its end and reason. Empty if no command can name it. */
  readonly command: string;
  readonly onClose: () => void;
  /** Fields that choose the matchers. */
  readonly children: ReactNode;
}

/** A silence, with the number of alerts that it mutes now and would have muted in the last week, before it is made. */
export function SilenceForm({ title, matchers, command, onClose, children }: SilenceFormProps) {
  const [duration, setDuration] = useState<DurationName>("2 h");
  const [reason, setReason] = useState("");
  const add = useAddSilence();
  const isEmpty = Object.keys(matchers).length === 0;
  const [asked] = useDebouncedValue(JSON.stringify(matchers), 300);
  const preview = useSilencePreview(JSON.parse(asked) as NewSilence["matchers"]);
  const why = reason.trim();
  return (
    <Modal opened onClose={onClose} title={title} size="lg" transitionProps={{ duration: 0 }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          add.mutate({ matchers, reason: why, durationMinutes: DURATIONS[duration] }, { onSuccess: onClose });
        }}
      >
        <Stack gap="sm">
          {children}
          <DurationChoice value={duration} onChange={setDuration} />
          <TextInput
            size="xs"
            label="Reason"
            data-autofocus
            description="Shown with your name wherever the silence acts."
            required
            maxLength={500}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          {isEmpty ? null : (
            <QueryView query={preview} rows={2} asking="which alerts it mutes">
              {({ now, lastWeek }) => (
                <div>
                  It mutes <b>{now.count}</b> unresolved {now.count === 1 ? "alert" : "alerts"} now. In the
                  last week it would have muted <b>{lastWeek.count}</b>.
                  <ul>
                    {lastWeek.items.slice(0, 8).map(({ id, headline, state }) => (
                      <li key={id}>
                        <Payload prose text={headline ?? `alert ${id}`} />{" "}
                        <span className="lw-note">({state})</span>
                      </li>
                    ))}
                  </ul>
                </div>
              )}
            </QueryView>
          )}
          {command === "" ? null : (
            <div>
              <div className="lw-note">The same in a terminal:</div>
              <code className="lw-wrap">
                {command} --for {DURATIONS[duration]}m --reason {quoteForShell(why === "" ? "why" : why)}
              </code>
            </div>
          )}
          <ProblemBox thrown={add.error} />
          <Button type="submit" size="xs" loading={add.isPending} disabled={why === "" || isEmpty}>
            Silence for {duration}
          </Button>
        </Stack>
      </form>
    </Modal>
  );
}

/** A silence of an alert: one of the choices that the service offers for it. */
export function SilenceDialog({
  alert,
  choices = alert.silenceChoices,
  onClose,
}: {
  readonly alert: AlertDetail;
  readonly choices?: AlertDetail["silenceChoices"];
  readonly onClose: () => void;
}) {
  const zoneName = useZoneTitle();
  const [chosen, choose] = useState("0");
  const choice = choices[Number(chosen)];
  if (choice === undefined)
    return (
      <Modal opened onClose={onClose} title="Silence" size="lg" transitionProps={{ duration: 0 }}>
        {alert.kind === "self"
          ? "This alert is about Longwatch itself. Only a silence for the kind self mutes it: longwatch silences add --kind self"
          : "This alert is about several zones. Silence the alerts of its rules, or each zone."}
      </Modal>
    );
  return (
    <SilenceForm
      title={`Silence in ${zoneName(alert.zoneId)}`}
      matchers={choice.matchers as NewSilence["matchers"]}
      command={choice.command.replace(/ --for .*/, "")}
      onClose={onClose}
    >
      <SegmentedControl
        size="xs"
        aria-label="What is silenced"
        orientation="vertical"
        data={choices.map((one, index) => ({ value: String(index), label: nameChoice(one) }))}
        value={chosen}
        onChange={choose}
      />
    </SilenceForm>
  );
}
