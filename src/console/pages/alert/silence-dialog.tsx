import { Button, Modal, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { type AlertDetail, useAddSilence, useSilencePreview } from "../../api/alert.ts";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox, QueryView } from "../../components/states.tsx";
import { quoteForShell } from "../../state/copy-text.ts";

const DURATIONS = { "30 min": 30, "1 h": 60, "2 h": 120, "8 h": 480, "1 d": 1_440, "7 d": 10_080 } as const;

/** A silence, with the number of alerts that it mutes now and would have muted in the last week, before it is made. */
export function SilenceDialog({
  alert,
  onClose,
}: {
  readonly alert: AlertDetail;
  readonly onClose: () => void;
}) {
  const { zoneId, ruleId } = alert;
  const [scope, setScope] = useState<"rule" | "zone">("rule");
  const [duration, setDuration] = useState<keyof typeof DURATIONS>("2 h");
  const [reason, setReason] = useState("");
  const add = useAddSilence();
  const matchers = {
    ...(zoneId === null ? {} : { zone: [zoneId] }),
    ...(scope === "rule" && ruleId !== null && ruleId !== "" ? { rule: [ruleId] } : {}),
  };
  const preview = useSilencePreview(matchers);
  const command = [
    "longwatch silences add",
    ...(zoneId === null ? [] : [`--zone ${zoneId}`]),
    ...("rule" in matchers ? [`--rule=${quoteForShell(ruleId ?? "")}`] : []),
    `--for ${DURATIONS[duration]}m --reason ${quoteForShell(reason.trim() === "" ? "why" : reason.trim())}`,
  ].join(" ");
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Silence in zone ${zoneId ?? ""}`}
      size="lg"
      transitionProps={{ duration: 0 }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          add.mutate(
            { matchers, reason: reason.trim(), durationMinutes: DURATIONS[duration] },
            { onSuccess: onClose },
          );
        }}
      >
        <Stack gap="sm">
          <SegmentedControl
            size="xs"
            aria-label="What is silenced"
            data={[
              { value: "rule", label: `rule ${ruleId ?? ""}` },
              { value: "zone", label: `all of zone ${zoneId ?? ""}` },
            ]}
            value={scope}
            onChange={(value) => setScope(value)}
          />
          <SegmentedControl
            size="xs"
            aria-label="For how long"
            data={Object.keys(DURATIONS)}
            value={duration}
            onChange={(value) => setDuration(value as keyof typeof DURATIONS)}
          />
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
          <QueryView query={preview} rows={2} asking="which alerts it mutes">
            {({ now, lastWeek }) => (
              <div>
                It mutes <b>{now.count}</b> unresolved {now.count === 1 ? "alert" : "alerts"} now. In the last
                week it would have muted <b>{lastWeek.count}</b>.
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
          <div>
            <div className="lw-note">The same in a terminal:</div>
            <code className="lw-wrap">{command}</code>
          </div>
          {add.error === null ? null : <ProblemBox thrown={add.error} />}
          <Button type="submit" size="xs" loading={add.isPending} disabled={reason.trim() === ""}>
            Silence for {duration}
          </Button>
        </Stack>
      </form>
    </Modal>
  );
}
