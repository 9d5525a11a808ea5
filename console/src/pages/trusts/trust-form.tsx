import {
  Autocomplete,
  Button,
  Group,
  Input,
  NumberInput,
  Paper,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  TagsInput,
  Textarea,
  TextInput,
} from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type ApiError } from '../../api/client';
import { changesOf } from '../../forms/changes';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import classes from '../../forms/whole-pills.module.css';
import {
  claimsOf,
  type Condition,
  conditionsOf,
  EXAMPLES,
  type Preset,
  PRESETS,
  type Trust,
  TRUST_LISTS,
} from './trust';

interface Draft {
  name: string;
  key: string;
  issuer: string;
  audience: string;
  jwks: string;
  any_ref: boolean;
  cidrs: string[];
  token_minutes: number;
  max_live: number;
}

const NEW: Draft = {
  name: '',
  key: '',
  issuer: '',
  audience: '',
  jwks: '',
  any_ref: false,
  cidrs: [],
  token_minutes: 60,
  max_live: 1_000,
};

function draftOf({
  name,
  key,
  issuer,
  audience,
  jwks,
  any_ref,
  cidrs,
  token_minutes,
  max_live,
}: Trust): Draft {
  const text = jwks === null ? '' : JSON.stringify(jwks, null, 2);
  return { name, key, issuer, audience, jwks: text, any_ref, cidrs: cidrs ?? [], token_minutes, max_live };
}

const emptyConditions = (preset: Preset): Condition[] =>
  PRESETS[preset].claims.map((name) => ({ name, values: [] }));

/** Creates a trust, or changes the one that is given. */
export function TrustForm({
  shown,
  onClose,
  onSaved,
}: {
  shown?: Trust;
  onClose: () => void;
  onSaved: (trust: Trust) => void;
}) {
  const stored = shown === undefined ? NEW : draftOf(shown);
  const [draft, setDraft] = useState(stored);
  const [preset, setPreset] = useState<Preset>(shown?.preset ?? 'github');
  const [conditions, setConditions] = useState(
    shown === undefined ? emptyConditions('github') : conditionsOf(shown.claims),
  );
  const about = PRESETS[preset];
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change });
  const claims = claimsOf(conditions, shown?.claims ?? {});
  const jwks = parsed(draft.jwks);
  const { form, rejected: error } = useSave(
    (): Promise<Trust> => {
      const { cidrs, jwks: _, ...others } = changesOf(stored, draft);
      const body = {
        ...others,
        ...(cidrs !== undefined && { cidrs: cidrs.length === 0 ? null : cidrs }),
        ...(draft.jwks !== stored.jwks && { jwks: jwks ?? null }),
      };
      return shown === undefined
        ? api.post('/admin/v1/trusts', {
            body: { ...body, name: draft.name, key: draft.key, preset, claims } as never,
          })
        : api.patch('/admin/v1/trusts/{id}', {
            path: { id: shown.id },
            body: { ...body, ...changesOf({ claims: shown.claims }, { claims }) } as never,
            shown,
          });
    },
    TRUST_LISTS,
    onSaved,
  );
  return (
    <FormModal
      title={shown === undefined ? 'Create a trust' : `Edit trust ${shown.name}`}
      onClose={onClose}
      action={shown === undefined ? 'Create trust' : 'Save'}
      {...form}
      disabled={draft.name === '' || draft.key === '' || jwks === undefined}
    >
      {shown === undefined && (
        <Select
          label="Preset"
          description="Who signs the identity tokens. It cannot be changed later."
          allowDeselect={false}
          data={Object.entries(PRESETS).map(([value, { label }]) => ({ value, label }))}
          value={preset}
          onChange={(value) => {
            setPreset(value as Preset);
            setConditions(emptyConditions(value as Preset));
            set({ any_ref: false });
          }}
          error={error?.of('preset')}
          data-autofocus
        />
      )}
      <TextInput
        label="Name"
        description="Jobs name it when they exchange a token."
        required
        placeholder="api-ci"
        value={draft.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
        error={error?.of('name')}
        autoComplete="off"
      />
      <KeyInput value={draft.key} onChange={(key) => set({ key })} error={error?.of('key')} />
      <Conditions value={conditions} onChange={setConditions} error={error} />
      {about.hasRefs && (
        <Switch
          label="Every branch, tag and environment"
          description="Otherwise the conditions must name which."
          checked={draft.any_ref}
          onChange={(event) => set({ any_ref: event.currentTarget.checked })}
        />
      )}
      <TextInput
        label="Issuer"
        description="The iss of its tokens, byte for byte."
        required={about.issuer === undefined}
        placeholder={about.issuer ?? about.example}
        value={draft.issuer}
        onChange={(event) => set({ issuer: event.currentTarget.value.trim() })}
        error={error?.of('issuer')}
        autoComplete="off"
        spellCheck={false}
      />
      <TextInput
        label="Audience"
        description="The only aud of its tokens."
        placeholder="The address of the gateway, GATEWAY_URL"
        value={draft.audience}
        onChange={(event) => set({ audience: event.currentTarget.value.trim() })}
        error={error?.of('audience')}
        autoComplete="off"
        spellCheck={false}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <NumberInput
          label="A token works for, minutes"
          min={5}
          max={60}
          allowDecimal={false}
          value={draft.token_minutes}
          onChange={(minutes) => set({ token_minutes: Number(minutes) })}
          error={error?.of('token_minutes')}
        />
        <NumberInput
          label="Tokens at a time"
          min={1}
          allowDecimal={false}
          thousandSeparator=","
          value={draft.max_live}
          onChange={(most) => set({ max_live: Number(most) })}
          error={error?.of('max_live')}
        />
      </SimpleGrid>
      <TagsInput
        label="Only from these networks"
        placeholder={draft.cidrs.length === 0 ? 'all' : undefined}
        value={draft.cidrs}
        onChange={(cidrs) => set({ cidrs })}
        splitChars={[',', ' ']}
        acceptValueOnBlur
        error={error?.of('cidrs')}
      />
      <Textarea
        label="Public keys of the issuer"
        description="A JSON Web Key Set, if Postern cannot reach the issuer. Leave it empty to read them from it."
        value={draft.jwks}
        onChange={(event) => set({ jwks: event.currentTarget.value })}
        error={jwks === undefined ? 'Must be JSON, such as {"keys": […]}' : error?.of('jwks')}
        autosize
        minRows={1}
        maxRows={8}
        spellCheck={false}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
      />
    </FormModal>
  );
}

/** @returns null for nothing, undefined for what is no JSON */
function parsed(text: string): unknown {
  if (text.trim() === '') return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const KEYS_SHOWN = 20;

/** The key whose tokens are issued: those that exist are suggested. */
function KeyInput({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (key: string) => void;
  error: string | undefined;
}) {
  const search = value.split('/').at(-1)?.trim() || undefined;
  const keys = useQuery({
    queryKey: ['keys', 'of-trusts', search],
    queryFn: ({ signal }) =>
      api.get('/admin/v1/keys', {
        query: { search, sort: 'name', status: 'active', limit: KEYS_SHOWN },
        signal,
      }),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
  const names = (keys.data?.data ?? []).map(({ team, name }) => `${team}/${name}`);
  return (
    <Autocomplete
      label="Key"
      description="team/name. Its limits, budgets and providers apply to the tokens. It needs no secret of its own."
      required
      placeholder="search/ci"
      value={value}
      onChange={onChange}
      data={[...new Set(names)]}
      filter={({ options }) => options}
      error={error}
      autoComplete="off"
    />
  );
}

/** Each claim that is named must have one of its values. */
function Conditions({
  value,
  onChange,
  error,
}: {
  value: Condition[];
  onChange: (conditions: Condition[]) => void;
  error: ApiError | undefined;
}) {
  const change = (at: number, part: Partial<Condition>) =>
    onChange(value.map((one, i) => (i === at ? { ...one, ...part } : one)));
  return (
    <Input.Wrapper
      label="Conditions"
      description="Each claim must have one of its values. A value may end with * after : or /."
      error={error?.of('claims')}
      labelElement="div"
      role="group"
      aria-label="Conditions"
    >
      <Stack gap="xs" mt="xs">
        {value.map(({ name, values }, at) => (
          <Paper key={at} withBorder p="xs" role="group" aria-label={`Condition ${at + 1}`}>
            <Group gap="xs" align="flex-start" wrap="wrap">
              <TextInput
                label="Claim"
                value={name}
                onChange={(event) => change(at, { name: event.currentTarget.value.trim() })}
                flex="1 1 140px"
                autoComplete="off"
                spellCheck={false}
              />
              <TagsInput
                label="Accepted values"
                placeholder={values.length === 0 ? EXAMPLES[name] : undefined}
                value={values}
                onChange={(next) => change(at, { values: next })}
                splitChars={[',']}
                acceptValueOnBlur
                classNames={{ pill: classes.pill }}
                error={error?.of(`claims.${name}`)}
                flex="2 1 200px"
              />
            </Group>
            <Button
              variant="subtle"
              size="compact-xs"
              mt={4}
              aria-label={`Remove condition ${at + 1}`}
              onClick={() => onChange(value.filter((_, i) => i !== at))}
            >
              Remove
            </Button>
          </Paper>
        ))}
        <Button
          variant="default"
          size="xs"
          style={{ alignSelf: 'flex-start' }}
          onClick={() => onChange([...value, { name: '', values: [] }])}
        >
          Add a condition
        </Button>
      </Stack>
    </Input.Wrapper>
  );
}
