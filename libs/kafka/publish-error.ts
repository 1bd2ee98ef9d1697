/**
 * Why a message was not published. `sent: false`: no producer was given it, and none will be. `sent: true`: a producer
 * was, and whether the broker has written it is not known.
 */
export class PublishError extends Error {
  override name = 'PublishError';
  readonly sent: boolean;

  constructor(message: string, sent: boolean, options?: { cause?: unknown }) {
    super(message, options);
    this.sent = sent;
  }
}
