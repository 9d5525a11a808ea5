import type { Circus } from '@jest/types';
import { TestEnvironment } from 'jest-environment-node';

/** Tells a test file whether one of its tests failed, so that its database can be kept for a look. */
export default class PosternEnvironment extends TestEnvironment {
  handleTestEvent(event: Circus.Event): void {
    if (event.name === 'test_fn_failure' || event.name === 'hook_failure') this.global.testFailed = true;
  }
}
