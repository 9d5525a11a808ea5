import { Code } from '@mantine/core';
import { PageLink } from './links';

/** A code of the gateway, with a link to what to do about it, in another tab: what is open stays. */
export function ErrorCode({ code }: { code: string }) {
  return (
    <PageLink to="/errors" hash={code} target="_blank" underline="always" fz="inherit">
      <Code>{code}</Code>
    </PageLink>
  );
}
