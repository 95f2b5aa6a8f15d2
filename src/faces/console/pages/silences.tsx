/** The page of silences. */

import { Select, Stack, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useFields } from "#faces/console/components/forms.tsx";
import { LASTING_SILENCE_STATES, SEVERITIES, SUBJECT_KINDS } from "#model/kinds.ts";
import { type NewSilence, type Silence, useSilences } from "../api/queries.ts";
import { useMay, useSession } from "../api/session.ts";
import { SilenceRow } from "../components/alert-lines.tsx";
import { SubtleButton } from "../components/buttons.tsx";
import { Rows } from "../components/facts.tsx";
import { PagedPanel } from "../components/panel.tsx";
import { quoteForShell } from "../state/browser.ts";
import { useZones, zoneTitle } from "../state/zones.ts";
import { MATCHERS } from "../style/words.ts";
import { SilenceForm } from "./alert/silence-dialog.tsx";

/** Lists the silences: what each mutes, until when, by whom and why. */
export default function SilencesPage() {
  const mayAct = useMay("act");
  const [isAdding, setAdding] = useState(false);
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Silences</h1>
      <List
        title="Silences"
        about="active, and pending ones that have not begun"
        actions={
          mayAct ? <SubtleButton icon="plus" word="Add a silence" onClick={() => setAdding(true)} /> : null
        }
        states={LASTING_SILENCE_STATES}
        none="Nothing is muted. A silence can also be made on the page of an alert, or from alerts that are selected in the list."
      />
      <List title="Ended" about="newest first" states={["expired"]} none="No silence has ended." />
      {isAdding ? <NewSilenceDialog onClose={() => setAdding(false)} /> : null}
    </div>
  );
}

interface Props {
  readonly title: string;
  readonly about: string;
  readonly actions?: ReactNode;
  readonly states: readonly Silence["state"][];
  readonly none: string;
}

function List({ title, about, actions, states, none }: Props) {
  const { isShown } = useZones();
  return (
    <PagedPanel
      title={title}
      about={about}
      actions={actions}
      query={useSilences(states)}
      what="silences"
      isShown={({ matchers }) => matchers?.zone === undefined || matchers.zone.some(isShown)}
      none={none}
    >
      {(silences) => (
        <Rows of={silences.toSorted(compare)}>{(one) => <SilenceRow key={one.id} silence={one} />}</Rows>
      )}
    </PagedPanel>
  );
}

function compare(one: Silence, other: Silence): number {
  return Number(one.state !== "active") - Number(other.state !== "active") || other.id - one.id;
}

type Member = Exclude<keyof NewSilence["matchers"], "zone">;

/** An example of each member of a silence, or every word that it takes. */
const EXAMPLES: Readonly<Record<Member, string>> = {
  rule: "942100, 941*",
  ip: "198.51.100.7, 203.0.113.0/24",
  url: "/api/*",
  asn: "AS64500",
  country: "NL, BE",
  ua: "curl/*",
  ja4: "t13d1516h2_8daaf6152771_b0da82dd1658",
  severity: SEVERITIES.join(", "),
  kind: SUBJECT_KINDS.join(", "),
};
const MEMBERS = Object.keys(EXAMPLES) as Member[];
/** A value of these may have a comma. */
const SINGLE: readonly Member[] = ["ua", "url"];
const SHOWN = 3;

function toValues(member: Member, typed: string): string[] {
  const values = SINGLE.includes(member) ? [typed] : typed.split(",");
  return values.map((value) => value.trim()).filter((value) => value !== "");
}

/** A silence that no alert has offered: by zone, rule, source, severity and kind. The service says which rule a value breaks. */
function NewSilenceDialog({ onClose }: { readonly onClose: () => void }) {
  const { all, only } = useZones();
  const { zones } = useSession();
  const none = Object.fromEntries(MEMBERS.map((member) => [member, ""])) as Record<Member, string>;
  const { values, text, choice } = useFields({ zone: String(only?.id ?? ""), ...none });
  // A key of some zones may silence these only.
  const zone = values.zone === "" ? zones : [Number(values.zone)];
  const given = MEMBERS.map((member) => [member, toValues(member, values[member])] as const);
  const matchers: Readonly<Record<string, readonly (string | number)[]>> = Object.fromEntries(
    [["zone", zone ?? []] as const, ...given].filter(([, some]) => some.length > 0),
  );
  const options = Object.entries(matchers).flatMap(([member, some]) =>
    some.map((value) => `--${member}=${quoteForShell(String(value))}`),
  );
  const field = (member: Member) => (
    <TextInput
      key={member}
      size="xs"
      label={MATCHERS[member] ?? member}
      labelProps={{ tt: "capitalize" }}
      data-autofocus={member === "rule" || undefined}
      placeholder={EXAMPLES[member]}
      {...text(member)}
    />
  );
  return (
    <SilenceForm
      title="New silence"
      matchers={matchers}
      command={options.length === 0 ? "" : `longwatch silences add ${options.join(" ")}`}
      onClose={onClose}
    >
      <div className="lw-note">
        It mutes the alerts that match every field. Of several values with commas between them, one is enough.
      </div>
      <Select
        size="xs"
        label="Zone"
        data={[
          { value: "", label: "every zone" },
          ...all.map((one) => ({ value: String(one.id), label: zoneTitle(one) })),
        ]}
        allowDeselect={false}
        {...choice("zone")}
      />
      {MEMBERS.slice(0, SHOWN).map(field)}
      <details>
        <summary className="lw-note">More: network, user agent, severity and others</summary>
        <Stack gap="sm" mt="sm">
          {MEMBERS.slice(SHOWN).map(field)}
        </Stack>
      </details>
    </SilenceForm>
  );
}
