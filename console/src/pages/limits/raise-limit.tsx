import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, ApiError } from '../../api/client';
import { Dialog } from '../../display/dialog';
import { ErrorAlert } from '../../display/error-alert';
import { RelativeTime } from '../../figures/figure';
import { type Limit, limitAmount, limitOwner, limitTitle } from '../../limits/limit';

/** Gives a budget its whole amount again until its period ends. */
export function RaiseLimit({ limit, onClose }: { limit: Limit | undefined; onClose: () => void }) {
  return (
    <Dialog opened={limit !== undefined} onClose={onClose} title="Raise for this period" centered>
      {limit !== undefined && <Form limit={limit} onClose={onClose} />}
    </Dialog>
  );
}

function Form({ limit, onClose }: { limit: Limit; onClose: () => void }) {
  const [reason, setReason] = useState('');
  const client = useQueryClient();
  const raise = useMutation({
    mutationFn: () =>
      api.post('/admin/v1/limits/{id}/reset', { path: { id: limit.id }, body: { reason: reason.trim() } }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['limits'] });
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (reason.trim() !== '') raise.mutate();
  };
  const fieldError = raise.error instanceof ApiError ? raise.error.of('reason') : undefined;
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Text size="sm">
          {limitOwner(limit)}, {limitTitle(limit).toLowerCase()}: {limitAmount(limit, limit.used)} of{' '}
          {limitAmount(limit, limit.amount)} is used. It gets its whole amount again
          {limit.resets_at === null ? '' : ', until it resets '}
          {limit.resets_at !== null && <RelativeTime at={limit.resets_at} />}. What was spent stays recorded.
        </Text>
        <TextInput
          label="Reason"
          description="Recorded in the audit log"
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
          error={fieldError}
          data-autofocus
        />
        {fieldError === undefined && <ErrorAlert error={raise.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={raise.isPending} disabled={reason.trim() === ''}>
            Raise {limitAmount(limit, limit.amount)}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
