/** The plans that people saved, and the address of the block list, on the page Review. */
import { TextInput } from "@mantine/core";
import { useState } from "react";
import { useFields } from "#faces/console/components/forms.tsx";
import { type ReviewChoice, type ReviewTotals, sayRule } from "#model/review.ts";
import { type Item, useChange, useOperation } from "../api/ask.ts";
import { useMay, useSession } from "../api/session.ts";
import { ActButton, ChoiceMenu, CopyButton, SubtleButton } from "../components/buttons.tsx";
import { Moment } from "../components/facts.tsx";
import { PopoverForm, type Toggled } from "../components/forms.tsx";
import { DataTable } from "../components/panel.tsx";
import { Payload } from "../components/payload.tsx";
import { useUrlState } from "../state/url-state.ts";
import { formatCount } from "../style/words.ts";
import classes from "./review.module.css";

interface Props {
  readonly zone: number;
  /** The choice that the page shows, and the rules that the plan blocks. */
  readonly choice: ReviewChoice;
  readonly planned: readonly string[];
  readonly count: (choice: ReviewChoice) => ReviewTotals;
}

/** Saves the choice, and compares it with a saved plan, which the address names. */
export function SavedPlans({ zone, choice, planned, count }: Props) {
  const { params, change } = useUrlState();
  const [isOpen, setOpen] = useState(false);
  const saved = useOperation("review.list", { zone }).data?.items.filter((one) => one.zone === zone) ?? [];
  const picked = saved.find(({ id }) => String(id) === params.get("saved"));
  const items = saved.map(({ id, name }) => [`#${id} ${name}`, () => change({ saved: String(id) })] as const);
  return (
    <div className={classes["saved"]}>
      <div className="lw-bar">
        {useMay("act") ? (
          <SaveForm
            key={String(isOpen)}
            zone={zone}
            choice={choice}
            planned={planned}
            isOpen={isOpen}
            onToggle={setOpen}
          />
        ) : null}
        {items.length === 0 ? null : <ChoiceMenu word="Compare with" items={Object.fromEntries(items)} />}
        <FeedAddress zone={zone} />
      </div>
      {picked === undefined ? null : <Compared saved={picked} choice={choice} count={count} />}
    </div>
  );
}

function SaveForm({ zone, choice, planned, ...toggled }: Toggled & Omit<Props, "count">) {
  const save = useChange("review.save");
  const { values, text } = useFields({ name: "", note: "" });
  const [name, note] = [values.name.trim(), values.note.trim()];
  const input = {
    zone,
    name,
    ...(note === "" ? {} : { note }),
    block: choice.block.join(","),
    log: planned.filter((rule) => !choice.block.includes(rule)).join(","),
    ...(choice.exclusions.length === 0
      ? {}
      : { exclude: choice.exclusions.map(({ rule, path }) => `${rule}@${path}`).join(",") }),
  };
  return (
    <PopoverForm
      word="Save this plan"
      {...toggled}
      onSubmit={() => save.mutate(input, { onSuccess: () => toggled.onToggle(false) })}
      submit={{ word: "Save", loading: save.isPending, disabled: name === "" }}
      problem={save.error}
    >
      <TextInput label="Name" data-autofocus maxLength={80} {...text("name")} />
      <TextInput label="Note" maxLength={500} {...text("note")} />
    </PopoverForm>
  );
}

function Compared({
  saved,
  choice,
  count,
}: Pick<Props, "choice" | "count"> & { readonly saved: Item<"review.list"> }) {
  const { change } = useUrlState();
  const remove = useChange("review.delete");
  const [shown, other] = [count(choice), count(saved)];
  const row = (head: string, get: (of: ReviewTotals, one: ReviewChoice) => number) => ({ head, get });
  const rows = [
    row("rules that block", (_, { block }) => block.length),
    row("hostile requests stopped", ({ classes }) => classes.hostile.stops),
    row("requests of visitors stopped", ({ classes }) => classes.visitor.stops),
    row("requests of unknown senders stopped", ({ classes }) => classes.unknown.stops),
    row("of both on the worst day", ({ worstDay }) => worstDay),
  ];
  const number = { className: "lw-number" };
  const rules = [...new Set([...choice.block, ...saved.block])].sort();
  const differing = rules.filter((rule) => sayRule(choice, rule) !== sayRule(saved, rule));
  return (
    <section aria-label="Comparison" className={classes["compared"]}>
      <p>
        <Payload prose say={`Plan #${saved.id} `} text={saved.name} />, saved <Moment at={saved.createdAt} />
        <Payload prose say=" by " text={saved.createdBy} />.{" "}
        {saved.followedSince === null ? (
          "The zone does not follow it."
        ) : (
          <>
            Followed since <Moment at={saved.followedSince} />.
          </>
        )}{" "}
        <Payload prose say="Note: " text={saved.note === "" ? null : saved.note} />
      </p>
      {saved.drift.map(({ rule, blocks, since }) => (
        <p key={rule}>
          <Payload prose say="Rule " text={rule} /> {blocks ? "blocks" : "logs"} since <Moment at={since} />,
          against the plan.
        </p>
      ))}
      <DataTable
        rows={rows}
        idOf={({ head }) => head}
        columns={[
          { head: "in the last 7 days", cell: ({ head }) => head },
          { head: "this page", cell: ({ get }) => formatCount(get(shown, choice)), ...number },
          { head: `plan #${saved.id}`, cell: ({ get }) => formatCount(get(other, saved)), ...number },
        ]}
      />
      {differing.map((rule) => (
        <div key={rule} className="lw-note">
          <Payload
            prose
            text={`${rule}: ${sayRule(choice, rule)} here, ${sayRule(saved, rule)} in plan #${saved.id}`}
          />
        </div>
      ))}
      <div className="lw-bar">
        <ActButton change={remove} input={{ id: saved.id }} word="Delete this plan" />
        <SubtleButton word="Close the comparison" onClick={() => change({ saved: null })} />
      </div>
    </section>
  );
}

function FeedAddress({ zone }: { readonly zone: number }) {
  const { publicUrl } = useSession();
  const address = `${publicUrl ?? globalThis.location.origin}/api/v1/blocklist?zone=${zone}`;
  return (
    <span className="lw-wrap">
      Block list for a firewall, with a key of the role feed: <code>{address}</code>{" "}
      <CopyButton text={() => address}>Copy</CopyButton>
    </span>
  );
}
