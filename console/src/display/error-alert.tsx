import { Alert, Button, Group } from '@mantine/core';
import { ApiError } from '../api/client';
import { WarningIcon } from './icons';

interface Props {
  error: unknown;
  /** For what may succeed later; there is no button for what the gateway would reject again. */
  retry?: () => void;
  title?: string;
  /** The fields of a form show what they can; only the rest is shown here. */
  ofForm?: boolean;
  /** What to say of a token or key that was rejected, where one was typed. */
  wrongSecret?: string;
}

/** What went wrong, in words for people, and a button to try again. */
export function ErrorAlert({ error, retry, title, ofForm = false, wrongSecret }: Props) {
  if (error === null || error === undefined) return null;
  const message =
    wrongSecret !== undefined && error instanceof ApiError && error.status === 401
      ? wrongSecret
      : messageOf(error, ofForm);
  if (message === undefined) return null;
  return (
    <Alert
      role="alert"
      color="red"
      variant="outline"
      icon={<WarningIcon />}
      title={title ?? titleOf(error)}
      styles={{ title: { color: 'var(--mantine-color-error)' } }}
    >
      <Group justify="space-between" gap="sm">
        <span style={{ overflowWrap: 'anywhere' }}>{message}</span>
        {retry !== undefined && mayPass(error) && (
          <Button size="xs" variant="default" onClick={retry}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}

function titleOf(error: unknown): string {
  if (!(error instanceof ApiError)) return 'The console failed';
  if (error.code === 'timeout') return 'No response';
  if (error.status === 0) return 'No connection';
  if (error.status === 403) return 'Not allowed';
  if (error.status === 404) return 'Not found';
  if (error.isChangedMeanwhile) return 'Changed by somebody else';
  if (error.status === 401) return 'Not signed in';
  if (error.status === 429) return 'Too many requests';
  return error.status >= 500 ? 'The gateway failed' : 'The gateway rejected this';
}

/** @returns undefined if the fields of a form say everything */
function messageOf(error: unknown, ofForm: boolean): string | undefined {
  if (error instanceof ApiError) {
    if (error.status === 401) return 'Your session has ended. Sign in, then try again.';
    if (error.status === 403 && error.details.length === 0)
      return 'Your role does not include this: ask an administrator.';
    if (error.status === 404 && !ofForm) return 'It does not exist, or it was removed.';
    if (error.isChangedMeanwhile)
      return 'Your change was not saved. Load the page again to see the present state, then repeat it.';
    return ofForm ? error.elsewhere : (error.elsewhere ?? error.message);
  }
  return `${error instanceof Error ? error.message : String(error)}. Load the page again; if it stays, report it.`;
}

/** Whether the same request may succeed later. */
function mayPass(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500;
}
