"""The mailbox programmer: prompts as files out, answers as files in, for a person or an agent."""

from kopt.actors.programmers.postbox.programmer import MailboxProgrammer

__all__ = ["MailboxProgrammer"]
