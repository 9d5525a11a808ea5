import { Alert, Button, Group } from '@mantine/core';
import { ApiError } from '../api/client';
import { WarningIcon } from './icons';

/** What went wrong, in the words of the gateway, and a button to try again. */
export function ErrorAlert({ error, retry, title }: { error: unknown; retry?: () => void; title?: string }) {
  if (error === null || error === undefined) return null;
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
        <span style={{ overflowWrap: 'anywhere' }}>{messageOf(error)}</span>
        {retry !== undefined && (
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
  if (error.status === 0) return 'No connection';
  if (error.status === 403) return 'Not allowed';
  if (error.status === 404) return 'Not found';
  if (error.status === 409 || error.status === 412) return 'Changed by somebody else';
  return error.status >= 500 ? 'The gateway failed' : 'The gateway rejected this';
}

export function messageOf(error: unknown): string {
  if (error instanceof ApiError) {
    return error.status === 403
      ? `${error.message} Your role does not include this; ask an admin.`
      : error.message;
  }
  return `${error instanceof Error ? error.message : String(error)}. Load the page again; if it stays, report it.`;
}
