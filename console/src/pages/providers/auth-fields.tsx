import { PasswordInput, Select, Text, TextInput } from '@mantine/core';
import type { ApiError } from '../../api/client';
import {
  API_KEY,
  type Auth,
  AUTH_CHOICES,
  AUTHS,
  inputsOf,
  type Settings,
  settingsOf,
  sourceChoices,
} from './auth';

interface Props {
  auth: Auth;
  settings: Settings;
  secret: string;
  /** The provider is stored, and keeps its secret unless another one is typed. */
  isStored: boolean;
  needsSecret: boolean;
  error: ApiError | undefined;
  onChange: (change: { auth?: Auth; settings?: Settings; secret?: string }) => void;
}

const NOT_NEEDED = 'Leave it empty if the provider needs none. ';

/** How a provider authenticates calls: the kind, its settings, and the secret, which is never shown again. */
export function AuthFields({ auth, settings, secret, isStored, needsSecret, error, onChange }: Props) {
  const { secret: about, fields } = inputsOf(auth, settings);
  const { keyless } = AUTHS[auth];
  return (
    <>
      <Select
        label="Authentication"
        allowDeselect={false}
        data={AUTH_CHOICES}
        value={auth}
        onChange={(value) => {
          const chosen = value as Auth;
          onChange({ auth: chosen, settings: { ...settingsOf(chosen, settings) } });
        }}
        error={error?.of('auth')}
      />
      {auth === 'client' && (
        <Text size="sm">
          What a caller sends to authenticate with the provider is forwarded as it is. Callers send their
          gateway key as x-gateway-key.
        </Text>
      )}
      {keyless !== undefined && (
        <Select
          label="Credential"
          description="Where it comes from. The identity of the gateway can take the place of a stored secret."
          allowDeselect={false}
          data={sourceChoices(auth)}
          value={settings[keyless.setting] ?? ''}
          onChange={(value) => onChange({ settings: { ...settings, [keyless.setting]: value ?? '' } })}
          error={error?.of(`auth_settings.${keyless.setting}`)}
        />
      )}
      {fields.map(({ name, ...field }) => (
        <TextInput
          key={name}
          {...field}
          value={settings[name] ?? ''}
          onChange={(event) =>
            onChange({ settings: { ...settings, [name]: event.currentTarget.value.trim() } })
          }
          error={error?.of(`auth_settings.${name}`) ?? error?.of(name)}
          autoComplete="off"
          spellCheck={false}
        />
      ))}
      {about !== null && (
        <PasswordInput
          label={isStored ? 'New secret' : 'Secret'}
          description={
            isStored
              ? `${about} Leave it empty to keep the present one.`
              : `${about} ${about === API_KEY && !needsSecret ? NOT_NEEDED : ''}Stored encrypted and never shown again.`
          }
          required={needsSecret}
          value={secret}
          onChange={(event) => onChange({ secret: event.currentTarget.value.trim() })}
          error={error?.of('secret')}
          aria-invalid={error?.of('secret') !== undefined}
          autoComplete="new-password"
          spellCheck={false}
          visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the secret', tabIndex: 0 }}
        />
      )}
    </>
  );
}
