import { Alert, Button, Group, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { CopyableId } from '../../display/copyable';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { CheckIcon, WarningIcon } from '../../display/icons';
import { SideDrawer } from '../../display/side-drawer';
import { StatusBadge } from '../../display/status-badge';
import { ExactTime } from '../../figures/figure';
import { duration } from '../../figures/numbers';
import { DialogButton } from '../../forms/dialog-button';
import { FormModal } from '../../forms/form-modal';
import { RemoveAction } from '../../forms/remove-action';
import { useSave } from '../../forms/use-save';
import { callersOf, ON_FAILURE, type Policy, POLICY_LISTS, SENT, stateOf } from './policy';
import { PolicyForm } from './policy-form';

/** One policy: what it is asked about, and what can be done with it. */
export function PolicyDrawer({ shown, onClose }: { shown: Policy | undefined; onClose: () => void }) {
  return (
    <SideDrawer opened={shown !== undefined} onClose={onClose} title={shown?.name ?? 'Policy'}>
      {shown !== undefined && <Details key={shown.id} shown={shown} onClose={onClose} />}
    </SideDrawer>
  );
}

function Details({ shown, onClose }: { shown: Policy; onClose: () => void }) {
  const mayChange = useMayChange();
  const state = stateOf(shown);
  return (
    <Stack gap="md">
      {mayChange && <Actions shown={shown} onClose={onClose} />}
      {shown.secret_state === 'unreadable' && (
        <Alert variant="outline" color="red" icon={<WarningIcon />} title="Its calls get 503">
          Its URL and secret were encrypted with another master key. Restore MASTER_KEY, or enter both again.
        </Alert>
      )}
      <Facts
        facts={[
          ['State', <StatusBadge tone={state.tone}>{state.label}</StatusBadge>],
          ['URL', <CopyableId id={shown.url} what="URL" />],
          ['Calls of', callersOf(shown)],
          ['Models', shown.applies_to.models?.join(', ') ?? 'all'],
          ['Gets', SENT[shown.send]],
          ['If it does not decide', ON_FAILURE[shown.on_failure]],
          ['Timeout', duration(shown.timeout_ms)],
          ['Decisions count for', shown.cache_seconds === 0 ? 'one call' : `${shown.cache_seconds} s`],
          ['Order', String(shown.order)],
          ['Created', <ExactTime at={shown.created_at} />],
          ['Changed', <ExactTime at={shown.updated_at} />],
          ['Policy ID', <CopyableId id={shown.id} what="policy ID" short />],
        ]}
      />
    </Stack>
  );
}

function Actions({ shown, onClose }: { shown: Policy; onClose: () => void }) {
  const path = { id: shown.id };
  const disable = useSave(
    () => api.patch('/admin/v1/policies/{id}', { path, body: { enabled: !shown.enabled }, shown }),
    POLICY_LISTS,
  ).form;
  return (
    <>
      <Group gap="xs">
        <DialogButton label="Edit">
          {(close) => <PolicyForm shown={shown} onClose={close} onSaved={close} />}
        </DialogButton>
        <DialogButton label="Test" variant="default">
          {(close) => <TestCall shown={shown} onClose={close} />}
        </DialogButton>
        <Button size="xs" variant="default" onClick={disable.onSubmit} loading={disable.pending}>
          {shown.enabled ? 'Disable' : 'Enable'}
        </Button>
        <RemoveAction
          what="policy"
          name={shown.name}
          remove={() => api.delete('/admin/v1/policies/{id}', { path, shown })}
          lists={POLICY_LISTS}
          onRemoved={onClose}
        >
          Its calls are forwarded without it. To stop it for a while, disable it instead.
        </RemoveAction>
      </Group>
      {!shown.enabled && (
        <Text size="sm" c="dimmed">
          It is not asked: its calls are forwarded without it.
        </Text>
      )}
      <ErrorAlert error={disable.error} />
    </>
  );
}

/** Asks about a call that is made up. Its body is kept nowhere. */
function TestCall({ shown, onClose }: { shown: Policy; onClose: () => void }) {
  const [model, setModel] = useState('');
  const [body, setBody] = useState('');
  const test = useMutation({
    mutationFn: () =>
      api.post('/admin/v1/policies/{id}/test', {
        path: { id: shown.id },
        body: { model: model === '' ? null : model, body },
      }),
    gcTime: 0,
  });
  return (
    <FormModal
      title={`Test ${shown.name}`}
      onClose={onClose}
      onSubmit={() => test.mutate()}
      action="Test"
      pending={test.isPending}
      error={test.error}
      disabled={false}
      keeps={false}
    >
      <TextInput
        label="Model"
        placeholder="gpt-5-mini"
        value={model}
        onChange={(event) => {
          setModel(event.currentTarget.value.trim());
          test.reset();
        }}
        autoComplete="off"
        spellCheck={false}
        data-autofocus
      />
      {shown.send === 'body' && (
        <Textarea
          label="Body"
          value={body}
          onChange={(event) => {
            setBody(event.currentTarget.value);
            test.reset();
          }}
          autosize
          minRows={4}
          maxRows={12}
          spellCheck={false}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        />
      )}
      <div aria-live="polite">{test.data !== undefined && <Result result={test.data} />}</div>
    </FormModal>
  );
}

type TestResult = Awaited<ReturnType<typeof api.post<'/admin/v1/policies/{id}/test'>>>;

function Result({ result }: { result: TestResult }) {
  const { decision } = result;
  const isGood = decision?.allow === true;
  const title =
    decision === null ? 'It does not decide' : isGood ? 'It would be forwarded' : 'It would be rejected';
  const tags = Object.entries(decision?.tags ?? {}).map((tag) => tag.join('='));
  return (
    <Alert
      role="status"
      variant="outline"
      color={isGood ? 'teal' : 'red'}
      icon={isGood ? <CheckIcon /> : <WarningIcon />}
      title={title}
      styles={{ title: { color: isGood ? 'var(--postern-good)' : 'var(--postern-bad)' } }}
    >
      <span style={{ overflowWrap: 'anywhere' }}>
        {decision === null && `${result.message} `}
        {decision?.allow === false && `${decision.code}: ${decision.message} `}
        {tags.length > 0 && `Tags: ${tags.join(', ')}. `}
        {duration(result.duration_ms)}.
      </span>
    </Alert>
  );
}
