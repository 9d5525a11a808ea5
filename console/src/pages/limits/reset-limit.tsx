import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, ApiError } from '../../api/client';
import { Dialog } from '../../display/dialog';
import { ErrorAlert } from '../../display/error-alert';
import { ExactTime } from '../../figures/figure';
import { type Limit, limitAmount, limitOwner, limitTitle } from '../../limits/limit';

/** Gives a budget its whole amount again until its period ends. */
export function ResetLimit({ limit, onClose }: { limit: Limit | undefined; onClose: () => void }) {
  return (
    <Dialog opened={limit !== undefined} onClose={onClose} title="Reset for this period" centered>
      {limit !== undefined && <Form limit={limit} onClose={onClose} />}
    </Dialog>
  );
}

function Form({ limit, onClose }: { limit: Limit; onClose: () => void }) {
  const [reason, setReason] = useState('');
  const client = useQueryClient();
  const reset = useMutation({
    mutationFn: () =>
      api.post('/admin/v1/limits/{id}/reset', { path: { id: limit.id }, body: { reason: reason.trim() } }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['limits'] });
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (reason.trim() !== '') reset.mutate();
  };
  const fieldError = reset.error instanceof ApiError ? reset.error.of('reason') : undefined;
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Text size="sm">
          {limitOwner(limit)}, {limitTitle(limit).toLowerCase()}: {limitAmount(limit, limit.used)} of{' '}
          {limitAmount(limit, limit.amount)} is used. It gets its whole amount again
          {limit.resets_at !== null && (
            <>
              {' '}
              until <ExactTime at={limit.resets_at} />
            </>
          )}
          . What was spent stays recorded. To change the amount for good, raise it.
        </Text>
        <TextInput
          label="Reason"
          description="Recorded in the audit log"
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
          error={fieldError}
          data-autofocus
        />
        {fieldError === undefined && <ErrorAlert error={reset.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={reset.isPending} disabled={reason.trim() === ''}>
            Reset
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
