import { Button, Group, Stack } from '@mantine/core';
import { type FormEvent, type ReactNode, useCallback, useEffect, useRef } from 'react';
import { Dialog } from '../display/dialog';
import { ErrorAlert } from '../display/error-alert';

interface Props {
  title: string;
  onClose: () => void;
  onSubmit: () => void;
  /** The label of the button: "Create key". */
  action: string;
  pending: boolean;
  error: unknown;
  disabled?: boolean;
  size?: string;
  /** False for a form that changes nothing. */
  keeps?: boolean;
  children: ReactNode;
}

/** A form over the page. It keeps what was typed when the gateway rejects it, and says why. Mount it to open it. */
export function FormModal({
  title,
  onClose,
  onSubmit,
  action,
  pending,
  error,
  disabled,
  size = 'lg',
  keeps = true,
  children,
}: Props) {
  const content = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (error !== null && error !== undefined) showFirstError(content.current);
  }, [error]);
  const begin = useCallback((form: HTMLFormElement | null) => {
    content.current = form;
    // The field that gets the focus may be below the edge of a long form, and the focus alone does not scroll to it.
    form?.querySelector('[data-autofocus]')?.scrollIntoView({ block: 'center' });
  }, []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // A form inside a portal still bubbles to the form around it.
    event.stopPropagation();
    if (!pending) onSubmit();
  };
  return (
    <Dialog opened onClose={onClose} title={title} size={size} closeOnClickOutside={false} keeps={keeps}>
      <form ref={begin} onSubmit={submit} noValidate>
        <Stack gap="md">
          {children}
          <ErrorAlert error={error} ofForm />
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={pending} disabled={disabled}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

/** The first field that is wrong, else what is said about the whole form. */
function showFirstError(form: HTMLFormElement | null): void {
  const field = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
  const place = field ?? form?.querySelector('[role="alert"]');
  place?.scrollIntoView({ block: 'center' });
  field?.focus({ preventScroll: true });
}
