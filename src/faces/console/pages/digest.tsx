import { Box } from "@mantine/core";
import { Link } from "wouter";
import { DAY_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import { type Output, useOperation } from "../api/ask.ts";
import { SubtleButton } from "../components/buttons.tsx";
import { Pairs } from "../components/facts.tsx";
import { QueryPanel } from "../components/panel.tsx";
import { Payload } from "../components/payload.tsx";
import { usePageLink, useUrlState } from "../state/url-state.ts";

/** One week in words: what was proven, what changed, how alerts were handled, and what will need a hand. */
export default function DigestPage() {
  const { params } = useUrlState();
  const digest = useOperation("digest.show", { week: params.get("week") });
  const link = usePageLink();
  const { from, to } = digest.data ?? {};
  const before = from === undefined ? null : toDay(Date.parse(from) - DAY_MS);
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Weekly digest</h1>
      <QueryPanel
        title="Weekly digest"
        about={from === undefined ? undefined : `${from} to ${to}, 00:00 UTC`}
        actions={<SubtleButton word="Week before" href={link("/digest", { week: before })} />}
        query={digest}
        rows={8}
      >
        {({ rows }) => (
          <Box p={12}>
            <Pairs of={rows.map(({ label, lines }) => [label, <Lines key={label} of={lines} />])} />
          </Box>
        )}
      </QueryPanel>
    </div>
  );
}

function Lines({ of }: { readonly of: Output<"digest.show">["rows"][number]["lines"] }) {
  const link = usePageLink();
  return of.map(({ text, page }, index) => {
    const [path = "", query = ""] = page?.split("?") ?? [];
    const shown = <Payload prose text={text} />;
    return (
      <div key={`${index}`}>
        {page === null ? (
          shown
        ) : (
          <Link href={link(path, Object.fromEntries(new URLSearchParams(query)))}>{shown}</Link>
        )}
      </div>
    );
  });
}
