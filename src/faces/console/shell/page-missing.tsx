import { Link } from "wouter";
import { Empty } from "../components/states.tsx";

export function PageMissing() {
  return (
    <Empty action={<Link href="/">Go to the overview</Link>}>
      There is no page at <code>{globalThis.location.pathname.slice(0, 200)}</code>, or your role does not
      include it.
    </Empty>
  );
}
