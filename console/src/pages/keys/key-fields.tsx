import { Select, Switch, TextInput } from '@mantine/core';
import { DateTimePicker } from '@mantine/dates';
import '@mantine/dates/styles.css';
import { useQuery } from '@tanstack/react-query';
import type { ApiError } from '../../api/client';
import { teamsQuery } from '../../api/load-all';
import {
  AnnotationFields,
  type Annotations,
  annotationsOf,
  NO_ANNOTATIONS,
} from '../../forms/annotation-fields';
import { ProviderNames } from '../providers/provider-names';
import { useLeads } from '../../app/session';
import { LimitFields } from '../../limits/limit-fields';
import { type LimitMembers, limitMembersOf, UNLIMITED } from '../../limits/limit-draft';
import { CacheFields } from './cache-fields';
import type { Key } from './key';

export type KeyDraft = LimitMembers &
  Annotations &
  Pick<
    Key,
    | 'name'
    | 'expires_at'
    | 'providers'
    | 'endpoints'
    | 'idempotency'
    | 'websockets'
    | 'on_disconnect'
    | 'cache'
  >;

const AS_PROVIDER = 'provider';

export const NEW_KEY: KeyDraft = {
  name: '',
  expires_at: null,
  providers: null,
  endpoints: 'inference',
  idempotency: 'forward',
  websockets: false,
  on_disconnect: null,
  cache: null,
  ...UNLIMITED,
  ...NO_ANNOTATIONS,
};

export function draftOf(key: Key): KeyDraft {
  const { name, providers, endpoints, idempotency, websockets, on_disconnect, cache } = key;
  return {
    name,
    // Sign-ins of its owner move the other one.
    expires_at: key.latest_expiry ?? key.expires_at,
    providers,
    endpoints,
    idempotency,
    websockets,
    on_disconnect,
    cache,
    ...limitMembersOf(key),
    ...annotationsOf(key),
  };
}

/** What can be set on a key. */
export function KeyFields({
  draft,
  onChange,
  error,
  team,
  stored,
  raised,
}: {
  draft: KeyDraft;
  /** The name of its team, once it is chosen. */
  team: string;
  onChange: (draft: KeyDraft) => void;
  error: ApiError | undefined;
  /** The key as it is; absent: it is created. */
  stored?: Key;
  /** The form was opened to raise a limit. */
  raised?: string;
}) {
  // A lead is not asked for what only administrators set.
  const leads = useLeads();
  const ofTeam = useQuery(teamsQuery).data?.rows.find(({ name }) => name === team);
  return (
    <>
      <TextInput
        label="Name"
        description="Unique within its team."
        required
        value={draft.name}
        onChange={(event) => onChange({ ...draft, name: event.currentTarget.value })}
        error={error?.of('name')}
        autoComplete="off"
        data-autofocus={raised === undefined || undefined}
      />
      <AnnotationFields
        value={draft}
        onChange={(annotations) => onChange({ ...draft, ...annotationsOf(annotations) })}
        error={error}
        inherited={ofTeam}
        charged={!leads}
        owned={stored?.self_service !== true}
      />
      <DateTimePicker
        label="Expires"
        placeholder="Never"
        clearable
        clearButtonProps={{ 'aria-label': 'Never expires' }}
        valueFormat="MMM D, YYYY HH:mm"
        minDate={new Date()}
        value={draft.expires_at === null ? null : new Date(draft.expires_at)}
        onChange={(value) =>
          onChange({ ...draft, expires_at: value === null ? null : new Date(value).toISOString() })
        }
        error={error?.of('expires_at')}
      />
      <ProviderNames
        label="Providers and routes"
        all="All"
        value={draft.providers}
        onChange={(providers) => onChange({ ...draft, providers })}
        error={error?.of('providers')}
        team={ofTeam?.id}
        allowed={ofTeam?.self_service?.providers ?? ofTeam?.providers ?? null}
      />
      {!leads && (
        <Select
          label="Endpoints"
          allowDeselect={false}
          data={[
            { value: 'inference', label: 'Inference only' },
            { value: 'own', label: 'All at providers of the team, inference elsewhere' },
            { value: 'all', label: 'All, also files and batches that other teams share' },
          ]}
          value={draft.endpoints}
          onChange={(value) => onChange({ ...draft, endpoints: value as KeyDraft['endpoints'] })}
        />
      )}
      <Select
        label="Idempotency-Key"
        allowDeselect={false}
        data={[
          { value: 'forward', label: 'Forward it to the provider' },
          { value: 'replay', label: 'Also repeat the stored response to a repeated call' },
        ]}
        value={draft.idempotency}
        onChange={(value) => onChange({ ...draft, idempotency: value as KeyDraft['idempotency'] })}
      />
      {!leads && (
        <>
          <Select
            label="When its client disconnects"
            allowDeselect={false}
            data={[
              { value: AS_PROVIDER, label: 'As the provider of the call says' },
              { value: 'cancel', label: 'Cancel the call' },
              {
                value: 'finish',
                label: 'Finish it: read the response to its end, so that its cost is known',
              },
            ]}
            value={draft.on_disconnect ?? AS_PROVIDER}
            onChange={(value) =>
              onChange({
                ...draft,
                on_disconnect: value === AS_PROVIDER ? null : (value as KeyDraft['on_disconnect']),
              })
            }
          />
          <Switch
            label="May open WebSockets on /v1/realtime and /v1/responses"
            checked={draft.websockets}
            onChange={(event) => onChange({ ...draft, websockets: event.currentTarget.checked })}
          />
        </>
      )}
      <CacheFields
        cache={draft.cache}
        mayShare={!leads}
        onChange={(cache) => onChange({ ...draft, cache })}
        error={error?.of('cache')}
      />
      <LimitFields
        value={draft}
        onChange={(members) => onChange({ ...draft, ...limitMembersOf(members) })}
        error={error}
        stored={stored && { owner: { key: stored.id }, budgets: stored.budgets }}
        raised={raised}
      />
    </>
  );
}
