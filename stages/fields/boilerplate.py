"""Sentences that stand under documents of every kind and say nothing of what is in this one."""

from typing import Final

from stages.fields.lexicon import pattern

# Each alternative is bounded and stays within its sentence.
_BOILERPLATE: Final = pattern(
    # English
    r"\bthis (?:e-?mail|message|communication|transmission|fax|facsimile)\b.{0,120}?"
    r"\b(?:confidential|privileged|intended|virus\w*|addressee)"
    r"|\bnot the (?:intended|named) (?:recipient|addressee)|\breceived this \w+(?: \w+){0,3} (?:in error|by mistake)"
    r"|\ball rights (?:are )?reserved\b|\bno part of this (?:publication|document|report|book)\b.{0,60}?\breproduced"
    r"|\bplease consider the environment\b|\bto unsubscribe\b|\bview (?:it|this \w+) in (?:your|a) browser"
    r"|\bthis (?:is an?|document|invoice|letter|statement|report)\b.{0,30}?"
    r"\b(?:computer|automatically|electronically)[ -]generated\b"
    r"|\bvalid without (?:a )?signature"
    r"|\bfor informational? purposes only\b|\bdoes not constitute\b.{0,40}?\b(?:offer|advice)\b"
    # German
    r"|\bdiese (?:e-?mail|nachricht|mitteilung)\b.{0,120}?\b(?:vertraulich|bestimmt)"
    r"|\bnicht der (?:richtige|beabsichtigte|vorgesehene|bestimmungsgem[äa][ßs]\w+) (?:adressat|empf[äa]nger)"
    r"|\birrt[üu]mlich (?:erhalten|zugestellt)|\balle rechte vorbehalten|\bnachdruck\b.{0,60}?\bverboten"
    r"|\bdieses? \w+ (?:wurde|ist) (?:\w+ )?(?:maschinell|automatisch|elektronisch) (?:erstellt|erzeugt)\b"
    r"|\bohne unterschrift g[üu]ltig|\bdenken sie\b.{0,40}?\bumwelt|\bnewsletter\b.{0,60}?\b(?:abmelden|abbestellen)"
    # French
    r"|\bce (?:message|courriel|courrier|m[ée]l|mail|e-mail)\b.{0,120}?\b(?:confidentiel|destin|exclusi)"
    r"|\bpas le destinataire\b|\bre[çc]u ce \w+ par erreur|\btous droits r[ée]serv[ée]s"
    r"|\bpens\w+ [àa] l.environnement|\bse d[ée]s(?:abonner|inscrire)\b|\bvous d[ée]s(?:abonner|inscrire)\b"
)


def is_boilerplate(sentence: str) -> bool:
    """Say whether a sentence is about the paper, the mail or its copying, and not about the matter."""
    return _BOILERPLATE.search(sentence) is not None
