import { Loader } from "@mantine/core";
import { Suspense } from "react";
import { Link, Redirect, Route, Switch } from "wouter";
import { takeLeftPage, useSessionQuery } from "./api/session.ts";
import { Empty, ProblemBox } from "./components/states.tsx";
import { ROUTES } from "./routes.tsx";
import { PageBoundary, Shell } from "./shell/shell.tsx";
import { SignIn } from "./shell/sign-in.tsx";

/** Shows the sign-in to nobody in particular, and the pages to a session. */
export function App() {
  const session = useSessionQuery();
  if (session.data === undefined) {
    if (session.error !== null)
      return <ProblemBox thrown={session.error} onRetry={() => void session.refetch()} />;
    return <Loader size="sm" m="xl" aria-label="Asking who is signed in" />;
  }
  if (session.data === null) return <SignIn />;
  return (
    <Shell>
      <Switch>
        {ROUTES.map(({ path, page: Page, title }) => (
          <Route key={path} path={path}>
            <PageBoundary title={title}>
              <Suspense fallback={<Loader size="sm" m="xl" aria-label={`Loading ${title}`} />}>
                <Page />
              </Suspense>
            </PageBoundary>
          </Route>
        ))}
        <Route path="/sign-in">
          <Redirect to={takeLeftPage()} replace />
        </Route>
        <Route>
          <Empty action={<Link href="/">Go to the overview</Link>}>
            There is no page at <code>{globalThis.location.pathname.slice(0, 200)}</code>.
          </Empty>
        </Route>
      </Switch>
    </Shell>
  );
}
