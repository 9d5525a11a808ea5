import { type ArgumentMetadata, Injectable, StandardSchemaValidationPipe } from '@nestjs/common';
import { invalidInput } from './parse-input.js';

/**
 * Validates `@Body({ schema })`, `@Query({ schema })` and `@Param('id', { schema })` of admin handlers and passes them the
 * parsed value. Errors name each field.
 */
@Injectable()
export class AdminValidationPipe extends StandardSchemaValidationPipe {
  /** Treats an absent body as an empty object, because some requests need no field. */
  override transform<T>(value: T, metadata: ArgumentMetadata): Promise<T> {
    const isWholeBody = metadata.type === 'body' && metadata.data === undefined;
    return super.transform(isWholeBody ? (value ?? ({} as T)) : value, metadata);
  }

  protected override async validate<T>(
    ...args: Parameters<StandardSchemaValidationPipe['validate']>
  ): Promise<{ value: T; issues?: undefined }> {
    const result = await super.validate<T>(...args);
    if (result.issues) throw invalidInput(result.issues, args[1]);
    return result;
  }

  /** A field named `__proto__` is an unknown field like any other: reported, not removed. */
  protected override stripProtoKeys(): void {}
}
